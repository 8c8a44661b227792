import { render } from 'preact';
import { afterEach, expect, test, vi } from 'vitest';
import type { Challenge, Failure } from '@seckill/client/types';
import { Captcha } from '../src/captcha/check';
import { setLanguage } from '../src/i18n/text';
import { server } from './shop';

afterEach(() => {
  render(null, document.body); // its effects would run without the stubs
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('the answer to the newest request counts, whichever comes last', async () => {
  const answers: ((challenge: Record<string, unknown>) => void)[] = [];
  vi.stubGlobal('createImageBitmap', () => new Promise(() => {})); // nothing is painted here
  vi.stubGlobal('fetch', () =>
    new Promise<Response>((resolve) =>
      answers.push((challenge) => {
        const data = { createCaptcha: { challenge: { expiresAt: new Date(Date.now() + 300_000).toISOString(), ...challenge }, userErrors: [] } };
        resolve(new Response(JSON.stringify({ data }), { headers: { 'content-type': 'application/json' } }));
      }),
    ),
  );
  await setLanguage('en');
  vi.useFakeTimers();
  localStorage.setItem('captcha', 'browser');
  render(<Captcha purpose="SECKILL" challenge={null} failure={null} onAnswer={() => {}} close={() => {}} />, document.body);
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  expect(document.querySelector('dialog')).toBeNull();
  await vi.advanceTimersByTimeAsync(3_000); // a check that takes long
  document.querySelector<HTMLElement>('button.link')!.click(); // "Use a picture instead"
  await vi.waitFor(() => expect(answers).toHaveLength(2));
  answers[1]!({ id: 'cap_2', kind: 'MATH', image: 'data:image/png;base64,', prompt: 'What is the sum?', parameters: null });
  await vi.waitFor(() => expect(document.body.textContent).toContain('What is the sum?'));
  answers[0]!({ id: 'cap_1', kind: 'PROOF_OF_WORK', image: null, prompt: '', parameters: '{}' });
  await vi.advanceTimersByTimeAsync(100); // promises settle
  expect(document.body.textContent).toContain('What is the sum?');
});

test('a check that could not be fetched comes by itself when the server is back', async () => {
  vi.stubGlobal('createImageBitmap', () => new Promise(() => {}));
  await setLanguage('en');
  vi.useFakeTimers();
  localStorage.setItem('captcha', 'picture');
  const expiresAt = new Date(Date.now() + 300_000).toISOString();
  const challenge = { id: 'cap_1', kind: 'MATH', image: 'data:image/png;base64,', prompt: 'What is the sum?', parameters: null, expiresAt };
  server({ CreateCaptcha: ['cut', 'cut', { createCaptcha: { challenge, userErrors: [] } }] });
  render(<Captcha purpose="SECKILL" challenge={null} failure={null} onAnswer={() => {}} close={() => {}} />, document.body);
  await vi.waitFor(() => expect(document.body.textContent).toContain('Cannot reach the shop'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(document.body.textContent).toContain('What is the sum?');
});

test('a refused challenge is gone before the next frame', async () => {
  vi.stubGlobal('createImageBitmap', () => new Promise(() => {}));
  vi.stubGlobal('requestAnimationFrame', () => 0); // no frame comes
  await setLanguage('en');
  const challenge = (id: string) =>
    ({ id, kind: 'MATH', image: 'data:image/png;base64,', prompt: `What is ${id}?`, parameters: null, early: false, expiresAt: new Date(Date.now() + 300_000).toISOString() }) as Challenge;
  const shown = (id: string): void => render(<Captcha purpose="SECKILL" challenge={challenge(id)} failure={null} onAnswer={() => {}} close={() => {}} />, document.body);
  shown('one');
  await Promise.resolve();
  await Promise.resolve();
  expect(document.body.textContent).toContain('What is one?');
  shown('two');
  await Promise.resolve();
  await Promise.resolve();
  expect(document.body.textContent).toContain('What is two?');
  expect(document.body.textContent).not.toContain('What is one?');
});

test('the browser answers by itself; a dialog opens for a picture, and after two refusals in a minute', async () => {
  vi.stubGlobal('createImageBitmap', () => new Promise(() => {}));
  await setLanguage('en');
  localStorage.removeItem('captcha');
  const expiresAt = new Date(Date.now() + 300_000).toISOString();
  const wants: unknown[] = [];
  const picture = { id: 'cap_1', kind: 'MATH', image: 'data:image/png;base64,', prompt: 'What is the sum?', parameters: null, expiresAt };
  vi.stubGlobal('fetch', (_: string, request: { body: string }) => {
    wants.push(JSON.parse(request.body).variables.input.automatic);
    const data = { createCaptcha: { challenge: picture, userErrors: [] } };
    return Promise.resolve(new Response(JSON.stringify({ data }), { headers: { 'content-type': 'application/json' } }));
  });
  const shown = (failure: Failure | null): void =>
    render(<Captcha purpose="SECKILL" challenge={null} failure={failure} onAnswer={() => {}} close={() => {}} />, document.body);
  shown(null);
  await Promise.resolve();
  expect(document.querySelector('dialog')).toBeNull();
  await vi.waitFor(() => expect(document.querySelector('dialog')?.textContent).toContain('What is the sum?')); // the sale wants one
  expect(wants).toEqual([true]);

  const expired = { __typename: 'PathError', code: 'PATH_INVALID', message: '' } as unknown as Failure;
  render(null, document.body);
  shown(expired);
  await vi.waitFor(() => expect(wants).toHaveLength(2));
  render(null, document.body);
  shown(expired);
  await vi.waitFor(() => expect(document.querySelector('dialog')?.textContent).toContain('Your spot expired. Verify once more.'));
  expect(document.querySelector('dialog .btn')?.textContent).toContain('Try again');
  expect(wants).toHaveLength(2);
});
