/** The widget of an external captcha provider. hCaptcha, Turnstile and reCAPTCHA take the same script parameters and `render`. */
import { useEffect, useRef } from 'preact/hooks';
import { t } from '../i18n/text';

interface Parameters {
  siteKey: string;
  script: string;
}

/** What the script of a widget defines. */
interface Widgets {
  render(at: HTMLElement, options: Record<string, unknown>): unknown;
  /** reCAPTCHA has none. */
  remove?(id: unknown): void;
}

/** Names that the scripts define. hCaptcha defines the one of reCAPTCHA too. */
const NAMES = ['turnstile', 'hcaptcha', 'grecaptcha'];
const READY = 'seckillCheckReady';
/** Timeout of loading a script and its dependencies, in ms. */
const LOAD_MS = 20_000;

/** Reads the parameters as the server writes them; null where the installation names no script. */
export function readParameters(parameters: string | null): Parameters | null {
  const { siteKey, script } = JSON.parse(parameters ?? '{}');
  return siteKey && script ? { siteKey, script } : null;
}

let loading: Promise<Widgets> | null = null;

/** Loads the script once. After a failure the next call tries again. */
function load(script: string): Promise<Widgets> {
  const page = window as unknown as Record<string, unknown>;
  return (loading ??= new Promise<Widgets>((resolve, reject) => {
    const url = new URL(script);
    url.searchParams.set('onload', READY);
    url.searchParams.set('render', 'explicit');
    url.searchParams.set('hl', document.documentElement.lang);
    const element = Object.assign(document.createElement('script'), { src: url.href, async: true });
    const late = setTimeout(() => fail(), LOAD_MS);
    const fail = (): void => {
      clearTimeout(late);
      element.remove();
      loading = null;
      reject(new Error(`no widget from ${url.host}`));
    };
    element.onerror = fail;
    page[READY] = () => {
      const name = NAMES.find((each) => each in page);
      if (!name) return fail();
      clearTimeout(late);
      resolve(page[name] as Widgets);
    };
    document.head.append(element);
  }));
}

/** Makes the dialog around an element non-modal: widgets add popups to the page, which a modal dialog covers and disables. */
function openToPopups(element: HTMLElement): void {
  const dialog = element.closest('dialog');
  if (!dialog?.matches(':modal')) return;
  dialog.close();
  dialog.show();
}

interface Props {
  parameters: string | null;
  /** Gets the token of the widget. */
  done(token: string): void;
  broken(why: string): void;
}

/** The widget. */
export function ExternalCaptcha({ parameters, done, broken }: Props) {
  const at = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { siteKey, script } = readParameters(parameters)!;
    const fail = (): void => broken(t('check.unreachable', { host: new URL(script).host }));
    let gone = false;
    let remove = (): void => {};
    openToPopups(at.current!);
    load(script).then((widgets) => {
      if (gone) return;
      const id = widgets.render(at.current!, { sitekey: siteKey, callback: done, 'error-callback': fail });
      remove = () => widgets.remove?.(id);
    }).catch(() => gone || fail());
    return () => {
      gone = true;
      remove();
    };
  }, []);
  return <div ref={at} class="min-h-20" data-check="outside" />;
}
