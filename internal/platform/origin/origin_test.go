package origin_test

import (
	"strings"
	"testing"

	"seckill/internal/platform/origin"
)

func TestOnlyAddressesOfTheOriginsAreInTheSet(t *testing.T) {
	t.Parallel()
	set := origin.NewSet("https://shop.example", "https://Store.example:443/orders/{number}", "http://127.0.0.1:5173", "", "javascript:alert(1)")
	for _, good := range []string{
		"https://shop.example", "https://shop.example/", "https://shop.example/orders/7?from=pay#top", "HTTPS://SHOP.example/x",
		"https://shop.example:443/x", "https://store.example/orders/A-1", "http://127.0.0.1:5173/x", "https://shop.example/a%20b",
		"https://shop.example/next?to=https://evil.example",
	} {
		if !set.Has(good) {
			t.Errorf("%q is refused", good)
		}
	}
	for _, bad := range []string{
		"", "/orders/7", "orders/7", "//shop.example/x", "///shop.example/x", "https:shop.example/x", "https:/shop.example/x", "https:///shop.example/x",
		"javascript:alert(1)", "JavaScript://shop.example/%0aalert(1)", "data:text/html,x", "file://shop.example/x", "ftp://shop.example/x",
		"http://shop.example/x", "https://evil.example/", "https://evil.example/https://shop.example/", "https://evil.example?https://shop.example",
		"https://evil.example#https://shop.example", "https://shop.example.evil.example/", "https://evilshop.example/", "https://xshop.example/",
		"https://user@shop.example/", "https://user:password@shop.example/", "https://shop.example@evil.example/", "https://shop.example%40evil.example/",
		"https://shop.example:8443/", "https://shop.example:80/", "https://shop.example:/", "https://shop.example:443:443/", "http://127.0.0.1/", "http://127.0.0.1:51730/",
		"https://shop.example./", "https://ѕhop.example/", "https://shop。example/", "https://shop.example\u2025/", "https://xn--hop-2zd.example/", "https://shop%2eexample/",
		"https://shop.example/\n", "\nhttps://shop.example/", "https://shop.example/\r\nSet-Cookie: a=b", "https://sh\top.example/", "https://shop.example/a b", " https://shop.example/",
		"https://shop.example\\@evil.example/", "https:\\\\shop.example/", "https://evil.example\\.shop.example/", "https://shop.example/\x00", "https://shop.example/\u202e",
		"https://[::1]/", "https://shop.example/" + strings.Repeat("a", 2048), "{", "https://{number}.shop.example/", "blob:https://shop.example/x",
	} {
		if set.Has(bad) {
			t.Errorf("%q is allowed", bad)
		}
	}
}
