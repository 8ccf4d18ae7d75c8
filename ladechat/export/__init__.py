"""A recorded session as a file for people without ladechat: cast, page, picture, Markdown, JSON."""
