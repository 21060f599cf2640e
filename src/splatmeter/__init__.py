"""splatmeter trains Mip-Splatting scenes and proves every speed-up."""

__version__ = "0.1.0"
