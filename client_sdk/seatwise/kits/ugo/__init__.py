"""UGO!: its kit, codec and frames, the methods of its bots, its sample bots, and the luck of its matches."""
