import { render } from 'preact';
import { expect, test, vi } from 'vitest';
import { lazy } from '../src/ui/lazy';

test('what comes between the first render of a component and its effects is shown', async () => {
  const Words = lazy(() => Promise.resolve(() => <p>here</p>));
  render(<Words />, document.body);
  await Words.preload(); // the pointer was on the button; effects run after the next frame
  await vi.waitFor(() => expect(document.body.textContent).toBe('here'));
});
