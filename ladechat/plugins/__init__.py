"""ladechat's drafters inside other engines. They run where ladechat's other dependencies are not: numpy is enough."""
