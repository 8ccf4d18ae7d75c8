"""Converts a recorded session to a file for people without ladechat: cast, page, picture, Markdown, JSON."""
