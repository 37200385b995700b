"""Messages in the files of other programs: lists of messages, exports, and logs."""
