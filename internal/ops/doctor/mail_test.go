package doctor_test

import (
	"testing"

	"seckill/internal/ops/doctor"
	"seckill/internal/testdb"
	"seckill/internal/testenv"
)

func TestDoctorSignsInAtTheMailServer(t *testing.T) {
	t.Parallel()
	server := testenv.NewMailServer(t)
	for name, c := range map[string]struct {
		password, tls string
		level         doctor.Level
		want          string
	}{
		"right":          {testenv.MailPassword, "required", doctor.OK, "accepts this shop"},
		"wrong password": {"another password", "required", doctor.Error, "SECKILL_SMTP_URL: mail server 127.0.0.1: "},
		"not encrypted":  {testenv.MailPassword, "off", doctor.Error, "SECKILL_SMTP_URL: mail server 127.0.0.1: "}, // the server wants TLS before a password
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deps(t, testdb.PostgresURL(t), testenv.RedisURL(t), "SECKILL_PUBLIC_URL", "https://shop.example.com", "SECKILL_SMTP_TLS", c.tls,
				"SECKILL_SMTP_URL", "smtp://"+testenv.MailUser+"@"+server.Host+":"+server.Port, "SECKILL_SMTP_PASSWORD", c.password,
				"SECKILL_SMTP_FROM", "Shop <shop@example.com>")
			d.MailTLS = server.TLS
			wants(t, check(t, d), "mail", c.level, c.want)
		})
	}
}
