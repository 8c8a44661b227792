package auth

// Parse decodes a token as any client may write it.
func (t *Tokens) Parse(token string) (*Principal, error) { return t.parse(token) }

// ParseMinted decodes a token as Mint writes it; nil = it is another.
func (t *Tokens) ParseMinted(token string) *Principal { return t.parseMinted(token) }
