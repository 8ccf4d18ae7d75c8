"""The app in a browser: a small web server that gives each tab an app of its own."""
