"""Jobs on other machines: submit, wait, repeat. What a job does is not known here: it is an argument list."""
