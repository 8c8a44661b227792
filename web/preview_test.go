package web_test

import (
	"strings"
	"testing"

	"seckill/web"
)

func TestALinkToASaleIsShownWithItsTitleGoodsAndPicture(t *testing.T) {
	t.Parallel()
	const origin, path = "https://shop.example", "/s/morning"
	sale := func(picture string) string {
		return `{"sale":{"title":"\"<Morning>\"","items":[{"goods":{"name":"Drone","imageUrl":null}},{"goods":{"name":"Lamp","imageUrl":` + picture + `}}]}}`
	}
	const text = `<meta property="og:type" content="website" /><meta property="og:title" content="&#34;&lt;Morning&gt;&#34;" />` +
		`<meta property="og:description" content="Drone, Lamp" />`
	const url = `<meta property="og:url" content="https://shop.example/s/morning" />`
	for name, c := range map[string]struct{ data, origin, want string }{
		"picture of the shop": {
			sale(`"/media/1.webp"`), origin,
			text + url + `<meta property="og:image" content="https://shop.example/media/1.webp" /><meta property="og:image:alt" content="Lamp" /><meta name="twitter:card" content="summary_large_image" />`,
		},
		"picture elsewhere": {
			sale(`"https://cdn.example/1.webp"`), "",
			text + `<meta property="og:image" content="https://cdn.example/1.webp" /><meta property="og:image:alt" content="Lamp" /><meta name="twitter:card" content="summary_large_image" />`,
		},
		"picture with a text": {
			sale(`"https://cdn.example/1.webp","imageAlt":"A \"red\" lamp"`), "",
			text + `<meta property="og:image" content="https://cdn.example/1.webp" /><meta property="og:image:alt" content="A &#34;red&#34; lamp" /><meta name="twitter:card" content="summary_large_image" />`,
		},
		"picture in the page":   {sale(`"data:image/svg+xml,x"`), origin, text + url},
		"no picture":            {sale(`null`), origin, text + url},
		"no public address":     {sale(`"/media/1.webp"`), "", text},
		"a list of sales":       {`{"sales":{"edges":[]}}`, origin, ""},
		"a sale that is absent": {`{"sale":null}`, origin, ""},
		"no data":               {``, origin, ""},
	} {
		if got := string(web.Pages{Origin: c.origin}.Preview(path, []byte(c.data))); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	long := web.Pages{Origin: origin}.Preview(path, []byte(`{"sale":{"title":"x","items":[{"goods":{"name":"`+strings.Repeat("名", 500)+`"}}]}}`))
	if n := strings.Count(string(long), "名"); n != 199 || !strings.Contains(string(long), "…") {
		t.Errorf("a long description has %d characters", n)
	}
}
