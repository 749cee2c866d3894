"""Programs that use the library as a user would; nothing but the command line imports them."""
