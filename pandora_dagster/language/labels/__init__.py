"""What the labels of web pages say."""
