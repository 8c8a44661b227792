package mail

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"seckill/internal/platform/locale"
)

//go:embed templates
var files embed.FS

// texts are the texts of each language: a template for each kind, whose first line is the
// subject. Paragraphs are separated by blank lines; the link is one of its own.
var texts = map[locale.Language]*texttemplate.Template{
	locale.English: texttemplate.Must(texttemplate.ParseFS(files, "templates/en.txt")),
	locale.Chinese: texttemplate.Must(texttemplate.ParseFS(files, "templates/zh.txt")),
}

// page is the HTML of an e-mail, made of the same paragraphs.
var page = template.Must(template.ParseFS(files, "templates/page.html"))

// text is an e-mail in words.
type text struct{ subject, plain, html string }

// write returns the text of an e-mail that is sent now. base is the address of the shop.
func write(kind Kind, language locale.Language, base string, c Content, now time.Time) (text, error) {
	templates, ok := texts[language]
	if !ok {
		templates = texts[locale.English]
	}
	values := map[string]any{"Shop": base, "Link": Link(base, c.Path), "Life": duration(language, c.Life), "Unsubscribe": ""}
	c.Notice.Name = locale.Isolate(oneLine(c.Notice.Name))
	values["Notice"], values["At"], values["Left"] = c.Notice, moment(language, c.Notice.At),
		duration(language, left(kind, c.Notice.At.Sub(now)))
	values["Receipt"], values["Date"] = c.Receipt.isolated(), date(language, c.Receipt.At)
	if c.Unsubscribe != "" {
		values["Unsubscribe"] = base + c.Unsubscribe
	}
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, string(kind), values); err != nil {
		return text{}, fmt.Errorf("text of e-mail %s: %w", kind, err)
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	body = strings.TrimSpace(body)
	var html strings.Builder
	err := page.ExecuteTemplate(&html, "page.html", map[string]any{
		"Language": language, "Subject": subject, "Paragraphs": strings.Split(body, "\n\n"), "Link": values["Link"],
		"Unsubscribe": values["Unsubscribe"],
	})
	if err != nil {
		return text{}, fmt.Errorf("page of e-mail %s: %w", kind, err)
	}
	return text{subject: subject, plain: body + "\n", html: html.String()}, nil
}

// Summary returns the subject and the first paragraph of a text that is sent now, for
// messages that have no room for more.
func Summary(kind Kind, language locale.Language, c Content, now time.Time) (title, body string, err error) {
	words, err := write(kind, language, "", c, now)
	return words.subject, firstParagraph(words), err
}

func firstParagraph(words text) string {
	first, _, _ := strings.Cut(words.plain, "\n\n")
	return strings.TrimSpace(first)
}

// isolated returns the values with the texts of people isolated.
func (r ReceiptContent) isolated() ReceiptContent {
	r.Buyer = oneLine(r.Buyer)
	for _, text := range []*string{&r.Item, &r.Buyer, &r.Seller, &r.Details, &r.TaxName} {
		*text = locale.Isolate(*text)
	}
	return r
}

// oneLine returns a name without line breaks: the first line of a text is the subject.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }

// beijing is the time that Chinese texts name. The time zone of a user is not known.
var beijing = time.FixedZone("Beijing", 8*60*60)

// moment returns a time in words, with its time zone.
func moment(language locale.Language, t time.Time) string {
	if language == locale.Chinese {
		return t.In(beijing).Format("1月2日 15:04（北京时间）")
	}
	return t.UTC().Format("15:04 UTC on 2 January")
}

// date returns a date in words, with its year; "" for the zero time.
func date(language locale.Language, t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case language == locale.Chinese:
		return t.In(beijing).Format("2006年1月2日（北京时间）")
	}
	return t.UTC().Format("2 January 2006 (UTC)")
}

// left returns the time left as a text names it: in whole minutes, at least one. Where money
// is due, or an admission expires, it names no more than is left, and seconds in the last minute.
func left(kind Kind, d time.Duration) time.Duration {
	switch {
	case kind != PaymentDeadline && kind != Admitted:
		return max((d + time.Minute - 1).Truncate(time.Minute), time.Minute)
	case d < time.Minute:
		return max(d.Truncate(time.Second), 0)
	}
	return d.Truncate(time.Minute)
}

// duration returns a duration in words: whole hours, or minutes, or seconds below a minute.
func duration(language locale.Language, d time.Duration) string {
	n, unit := int(d/time.Minute), [2]string{"minutes", "分钟"}
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		n, unit = int(d/time.Hour), [2]string{"hours", "小时"}
	case d < time.Minute:
		n, unit = int(d/time.Second), [2]string{"seconds", "秒"}
	}
	if language == locale.Chinese {
		return fmt.Sprintf("%d %s", n, unit[1])
	}
	if n == 1 {
		return "1 " + strings.TrimSuffix(unit[0], "s")
	}
	return fmt.Sprintf("%d %s", n, unit[0])
}
