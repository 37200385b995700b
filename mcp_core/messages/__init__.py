"""What passes in and out of a `Connection`: events, outgoing messages, rejections."""
