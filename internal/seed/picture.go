package seed

import (
	"encoding/base64"
	"fmt"
)

// Shapes of the demo's products, drawn with lines on an area of 160 × 120. They need no
// font, so that they look the same on every machine.
const (
	phoneShape      = `<rect x="60" y="22" width="40" height="76" rx="8"/><path d="M74 88h12M76 30h8"/>`
	laptopShape     = `<rect x="46" y="32" width="68" height="44" rx="4"/><path d="M34 88h92M70 82h20"/>`
	vacuumShape     = `<circle cx="80" cy="60" r="32"/><circle cx="80" cy="60" r="8"/><path d="M56 44a32 32 0 0 1 48 0"/>`
	readerShape     = `<rect x="56" y="24" width="48" height="72" rx="6"/><path d="M66 40h28M66 50h28M66 60h28M66 70h16"/>`
	watchShape      = `<circle cx="80" cy="60" r="22"/><path d="M80 48v12l8 6M70 40l3-16h14l3 16M70 80l3 16h14l3-16"/>`
	espressoShape   = `<path d="M54 46h44v22a18 18 0 0 1-18 18h-8a18 18 0 0 1-18-18zM98 52h6a9 9 0 0 1 0 18h-6M66 38v-8M78 38v-8M90 38v-8"/>`
	droneShape      = `<rect x="68" y="52" width="24" height="16" rx="5"/><path d="M68 54L52 42M92 54l16-12M68 66L52 78M92 66l16 12"/><path d="M40 40h24M96 40h24M40 80h24M96 80h24"/>`
	headphonesShape = `<path d="M48 74V62a32 32 0 0 1 64 0v12"/><rect x="42" y="70" width="14" height="24" rx="5"/><rect x="104" y="70" width="14" height="24" rx="5"/>`
)

// picture returns a small SVG of a product as a data URL, so that the demo has pictures
// without files or other hosts.
func picture(shape, tint string) string {
	svg := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 120"><rect width="160" height="120" fill="%s"/>`+
		`<g fill="none" stroke="#292524" stroke-width="3" stroke-linecap="round" stroke-linejoin="round">%s</g></svg>`, tint, shape)
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg))
}
