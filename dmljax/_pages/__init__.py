"""The examples of Microsoft's pages, as data, and how they are shown."""
