package mail

import (
	"embed"
	"fmt"
	"html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"seckill/internal/locale"
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

// write returns the text of an e-mail. base is the address of the shop.
func write(kind Kind, language locale.Language, base string, c Content) (text, error) {
	templates, ok := texts[language]
	if !ok {
		templates = texts[locale.English]
	}
	values := map[string]any{"Shop": base, "Link": base + c.Path, "Life": duration(language, c.Life), "Receipt": c.Receipt}
	var out strings.Builder
	if err := templates.ExecuteTemplate(&out, string(kind), values); err != nil {
		return text{}, fmt.Errorf("text of e-mail %s: %w", kind, err)
	}
	subject, body, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	body = strings.TrimSpace(body)
	var html strings.Builder
	err := page.ExecuteTemplate(&html, "page.html", map[string]any{
		"Language": language, "Subject": subject, "Paragraphs": strings.Split(body, "\n\n"), "Link": values["Link"],
	})
	if err != nil {
		return text{}, fmt.Errorf("page of e-mail %s: %w", kind, err)
	}
	return text{subject: subject, plain: body + "\n", html: html.String()}, nil
}

// duration returns a duration in words: whole hours, or minutes.
func duration(language locale.Language, d time.Duration) string {
	n, unit := int(d/time.Minute), [2]string{"minutes", "分钟"}
	if d >= time.Hour && d%time.Hour == 0 {
		n, unit = int(d/time.Hour), [2]string{"hours", "小时"}
	}
	if language == locale.Chinese {
		return fmt.Sprintf("%d %s", n, unit[1])
	}
	if n == 1 {
		return "1 " + strings.TrimSuffix(unit[0], "s")
	}
	return fmt.Sprintf("%d %s", n, unit[0])
}
