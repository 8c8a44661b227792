import { render } from 'preact';
import { act } from 'preact/test-utils';
import { expect, test } from 'vitest';
import { setLanguage } from '../src/i18n/text';
import { Dialog } from '../src/ui/dialog';

test('a sheet that opens takes the focus itself: a key that is held down presses nothing in it', async () => {
  await setLanguage('en');
  await act(() => render(<Dialog title="One" close={() => {}}><button>Do it</button></Dialog>, document.body));
  expect(document.activeElement?.tagName).toBe('DIALOG');
});
