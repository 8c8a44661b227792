package config

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Former are settings of the previous release that are constants now. For one release they
// are accepted, ignored and reported. The tag says what is constant.
type Former struct {
	FormerCaptchaPool  string `name:"captcha-pool" hidden:"" group:"former" constant:"1024 captcha pictures of each kind are kept drawn, 64 in development"`
	FormerCaptchaTTL   string `name:"captcha-ttl" hidden:"" group:"former" constant:"a captcha can be answered for 5m"`
	FormerClaimIdle    string `name:"claim-idle" hidden:"" group:"former" constant:"a message whose worker was silent for 15s goes to another worker"`
	FormerDrainDelay   string `name:"drain-delay" hidden:"" group:"former" constant:"/readyz fails for 2s before the listeners close, in development not at all"`
	FormerLoadSlot     string `name:"load-slot" hidden:"" group:"former" constant:"a time slot of the scheduler is 2h"`
	FormerLoadSlots    string `name:"load-slots" hidden:"" group:"former" constant:"sales are loaded that start within 5 time slots"`
	FormerOrderBatch   string `name:"order-batch" hidden:"" group:"former" constant:"at most 256 orders are written in one transaction"`
	FormerPreloadEvery string `name:"preload-every" hidden:"" group:"former" constant:"the scheduler looks for sales to load every 5s"`
	FormerPushServices string `name:"push-services" hidden:"" group:"former" constant:"browsers subscribe at the push services of Chrome, Edge, Firefox and Safari"`
	FormerUserSockets  string `name:"user-sockets" hidden:"" group:"former" constant:"a signed-in user may have 3 sockets open to one process"`
}

// constant returns what replaced a former setting; "" for a setting.
func constant(flag *kong.Flag) string { return flag.Tag.Get("constant") }

// noteFormer records the use of an old name: of a variable, a key or a flag.
func (s *Source) noteFormer(used string, flag *kong.Flag) {
	line := used + " is no longer a setting and is ignored: " + constant(flag)
	if constant(flag) == "" {
		line = used + " is an old name: write " + fileKey(flag.Name)
		if strings.HasSuffix(strings.ToLower(used), "_file") {
			line += "_file"
		}
	}
	s.former = append(s.former, line)
}

// Former returns a line for each old name that the command line, the environment or the
// file uses, with what takes its place.
func (s *Source) Former(ctx *kong.Context) []string {
	flags := settingFlags(ctx.Model)
	for _, arg := range ctx.Args {
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if flag := flags[name]; flag != nil && strings.HasPrefix(arg, "--") && (name != flag.Name || constant(flag) != "") {
			s.noteFormer("--"+name, flag)
		}
	}
	slices.Sort(s.former)
	return slices.Compact(s.former)
}
