"""The app in a browser: a small web server that starts an app for each tab."""
