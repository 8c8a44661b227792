package main

import (
	"fmt"

	"seckill/internal/platform/config"
)

type pushKeyCmd struct{}

func (pushKeyCmd) Help() string {
	return "The private key goes to standard output, for SECKILL_PUSH_PRIVATE_KEY; the public key, which the server derives, to standard error.\n\n" +
		examples("seckill push-key > push-key")
}

func (pushKeyCmd) Run(c *call) error {
	private, err := config.NewPushKey()
	if err != nil {
		return err
	}
	public, err := config.PushPublicKey(private)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.env.stderr, "public key: "+public)
	fmt.Fprintln(c.env.stdout, private.Reveal())
	return nil
}
