// Package locale names the languages of texts for users: e-mails, reports and messages of
// the API.
package locale

// Language is a language of texts, as in an HTML lang attribute.
type Language string

// Languages. Every text exists in both.
const (
	English Language = "en"
	Chinese Language = "zh"
)
