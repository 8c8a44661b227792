import { render } from 'preact';
import { afterEach, expect, test } from 'vitest';
import type { Failure } from '@seckill/client/types';
import { Field, labelIn, words } from '../src/operator/form';

afterEach(() => render(null, document.body));

const form = (): HTMLFormElement => document.querySelector('form')!;
const failure = (path: string[], message: string, code = 'INVALID_INPUT') => ({ __typename: 'InvalidInputError', code, message, path: ['input', ...path] }) as unknown as Failure;

function show(): void {
  render(
    <form>
      <Field label="Opens">
        <input name="starts" />
      </Field>
      <Field label="Accent colour (optional)">
        <input name="accent" />
      </Field>
      <label>
        <input type="checkbox" name="contact" />
        Verified contact
      </label>
      {[0, 7].map((key, i) => (
        <fieldset key={key}>
          <legend>Item {i + 1}</legend>
          <Field label="Price">
            <input name={`price-${key}`} />
          </Field>
          <Field label="Limit">
            <input name={`limit-${key}`} />
          </Field>
        </fieldset>
      ))}
    </form>,
    document.body,
  );
}

test('a refusal names the field as the form does', () => {
  show();
  expect(words(failure(['startsAt'], 'Start: must be in the future.'), form())).toBe('Opens: must be in the future.');
  expect(words(failure(['startsAt'], '开始时间：须晚于当前时间。'), form())).toBe('Opens：须晚于当前时间。');
  expect(words(failure(['accent'], 'Accent colour: its contrast with white is 2.87:1.'), form())).toBe('Accent colour: its contrast with white is 2.87:1.');
  expect(words(failure(['items', '1', 'price', 'amount'], 'Amount of item 2: at least 1.'), form())).toBe('Item 2 · Price: at least 1.');
  expect(labelIn(form(), ['items', '0', 'purchaseLimit'])).toBe('Item 1 · Limit');
  expect(labelIn(form(), ['requireVerifiedContact'])).toBe('Verified contact');
});

test('a refusal about a field that the form does not have names none', () => {
  show();
  expect(words(failure(['saleId'], 'Sale: its start has passed; set another first.'), form())).toBe('Its start has passed; set another first.');
  expect(words(failure(['preheatAt'], 'Preload: must not be after the start.'), form())).toBe('Must not be after the start.');
  expect(words(failure(['saleId'], 'This cannot be done.', 'SOME_CODE'), form())).toBe('This cannot be done.');
});
