# Whoever installs from sources without a compiler that will do gets a sentence: what is wrong, and where. What to do about
# it stands under messages.after-failure in pyproject.toml, which is the last that they see.
function(refuse sentence)
  message(FATAL_ERROR "${sentence}\n")
endfunction()

if(CMAKE_HOST_WIN32)
  refuse("Windows itself is not supported yet: install splatmeter under WSL2, where it is Linux.")
endif()

include(CheckLanguage)
check_language(CXX)
if(NOT CMAKE_CXX_COMPILER)
  if(DEFINED ENV{CXX})  # of the user, or the one that Python itself was built with
    refuse("There is no C++ compiler that works; $ENV{CXX} was tried.")
  endif()
  refuse("There is no C++ compiler that works.")
endif()
enable_language(CXX)

# The oldest that have been seen to compile all of it; GCC 11 lacks __builtin_shufflevector.
set(SPLAT_OLDEST_GNU 12)
set(SPLAT_OLDEST_Clang 13)
set(SPLAT_OLDEST "${SPLAT_OLDEST_${CMAKE_CXX_COMPILER_ID}}")
if(SPLAT_OLDEST AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS SPLAT_OLDEST)
  refuse("${CMAKE_CXX_COMPILER} is too old: it is version ${CMAKE_CXX_COMPILER_VERSION}, and ${SPLAT_OLDEST} or newer is needed.")
endif()
