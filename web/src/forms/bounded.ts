/** Bounds of fields in forms that the browser checks. */
import { t } from '../i18n/text';
import { lengthOf, text } from './typed';

/**
 * A ref that bounds the characters of a field, counted as the server counts them. `maxLength` and `minLength` of HTML count UTF-16 units, and
 * `maxLength` cuts what is pasted. An empty value is left to `required`.
 */
export function bounded({ least = 0, most }: { least?: number; most: number }): (field: HTMLInputElement | HTMLTextAreaElement | null) => void {
  return (field) => {
    if (!field) return;
    const check = (): void => {
      const n = lengthOf(field.value);
      if (n && n < least) field.setCustomValidity(t('form.short', { n: least }));
      else field.setCustomValidity(n > most && lengthOf(text(field.value)) > most ? t('form.long', { n: most }) : '');
    };
    field.oninput = check;
    field.oninvalid = () => {
      check();
      if (field.validity.valueMissing) field.setCustomValidity(t('form.required')); // in the language of the page, not of the browser
    };
    check();
  };
}
