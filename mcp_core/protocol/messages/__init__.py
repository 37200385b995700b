"""The messages in and out of a `Connection`: events, outgoing messages, rejections."""
