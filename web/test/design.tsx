/** The design system: tokens, components and their states. `npm run dev` serves it at /design.html; it is not part of the build. */
import { render } from 'preact';
import type { ComponentChildren } from 'preact';
import { useSignal } from '@preact/signals';
import { Fault } from '@seckill/client/fault';
import { lang } from '../src/i18n/lang';
import { loadTexts, setLanguage } from '../src/i18n/text';
import { FileInput } from '../src/operator/file';
import { Field } from '../src/operator/form';
import { textsOf } from '../src/operator/texts';
import { When } from '../src/operator/when';
import { FaultMessage, Loading, PhaseChip, Price, StockBar, SuccessMessage } from '../src/ui/bits';
import { Ticking } from '../src/ui/countdown';
import { Dialog } from '../src/ui/dialog';
import { Icon, Tick } from '../src/ui/icons';
import { Select } from '../src/ui/select';
import { nextTheme } from '../src/ui/theme';
import { toast, Toasts } from '../src/ui/toast';
import '../src/style.css';

const icons = ['sun', 'moon', 'half', 'globe', 'person', 'close', 'check', 'calendar', 'bell', 'search', 'next', 'more', 'bank', 'card', 'chat', 'wallet'] as const;
const row = { display: 'flex', flexWrap: 'wrap', gap: '1rem', alignItems: 'center' } as const;

function Part({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <section style={{ marginBlock: '2rem' }}>
      <h2 class="head">{name}</h2>
      <div style={{ ...row, marginTop: '0.75rem' }}>{children}</div>
    </section>
  );
}

/** The names of the colours, as the style sheet has them. */
function colours(): string[] {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const text = rules.map(({ cssText }) => cssText).join('\n');
  return [...new Set([...text.matchAll(/--color-([a-z]+):/g)].map(([, name]) => name!))];
}

const price = (amount: string) => ({ amount, currencyCode: 'CNY' }) as Parameters<typeof Price>[0]['now'];
const stock = (level: 'PLENTY' | 'LOW' | 'SOLD_OUT', remaining: number) => ({ level, remaining, total: 100, updatedAt: new Date().toISOString() }) as Parameters<typeof StockBar>[0]['stock'];

function Design() {
  const open = useSignal(false);
  void lang.value;
  return (
    <main class="page">
      <h1 class="title">Design system</h1>
      <div style={row}>
        <button class="btn" onClick={nextTheme}>Theme</button>
        <button class="btn" onClick={() => void setLanguage(lang.value === 'zh' ? 'en' : 'zh')}>{lang.value === 'zh' ? 'English' : '中文'}</button>
      </div>
      <Part name="Colours">
        {colours().map((name) => (
          <span key={name} style={{ display: 'grid' }}>
            <span style={{ width: '6rem', height: '3rem', borderRadius: '0.75rem', border: '1px solid var(--color-line)', background: `var(--color-${name})` }} />
            <small>{name}</small>
          </span>
        ))}
      </Part>
      <Part name="Type">
        <span class="title">Title 限时秒杀</span>
        <span class="head">Heading 标题</span>
        <span>Body 正文</span>
        <small class="text-soft">Secondary 辅助文字</small>
        <span class="numeral text-5xl">0:03</span>
        <span class="tabular-nums">1,234.50</span>
        <a class="link" href="#app">Link 链接</a>
      </Part>
      <Part name="Buttons: blue acts, black marks what is chosen">
        <button class="btn btn-main">Main</button>
        <button class="btn">Other</button>
        <button class="btn btn-main" aria-disabled="true"><span class="spin" /> Busy</button>
        <button class="chip">Chip</button>
        <button class="chip aria-pressed:border-ink aria-pressed:font-semibold" aria-pressed>Chosen</button>
        <button class="icon-btn" aria-label="More"><Icon name="more" /></button>
        <button class="btn btn-main btn-big">Buy · ¥699</button>
        <button class="btn btn-big" aria-disabled="true">Sold out</button>
      </Part>
      <Part name="Fields">
        <Field label="Text"><input class="field" placeholder="Example" /></Field>
        <Field label="Refused"><input class="field" aria-invalid="true" defaultValue="wrong" /></Field>
        <Field label="Choice"><Select value="a" choices={[{ value: 'a', label: 'A' }, { value: 'b', label: 'B' }]} /></Field>
        <When kind="day" label="Day" />
        <When kind="time" label="Time" value="2026-11-28 19:30:00" />
        <Field label="File"><FileInput accept="image/*" /></Field>
      </Part>
      <Part name="States">
        {(['UPCOMING', 'LIVE', 'PAUSED', 'ENDED'] as const).map((phase) => <PhaseChip key={phase} phase={phase} />)}
        <Loading />
        <FaultMessage fault={new Fault('NETWORK', '')} again={() => {}} />
        <SuccessMessage>Saved</SuccessMessage>
        <p class="note">Note</p>
        <p class="note text-warn">Warning</p>
        <p class="note text-danger" role="alert">Danger</p>
        <Tick size={48} />
      </Part>
      <Part name="Sale">
        <Price now={price('699.00')} usual={price('1899.00')} large />
        {[stock('PLENTY', 80), stock('LOW', 5), stock('SOLD_OUT', 0)].map((each) => <div key={each.level} style={{ width: '16rem' }}><StockBar stock={each} /></div>)}
        <span class="numeral text-5xl"><Ticking until={Date.now() + 65_000} /></span>
      </Part>
      <Part name="Icons">
        {icons.map((name) => <span key={name} title={name}><Icon name={name} /></span>)}
      </Part>
      <Part name="Over the page">
        <button class="btn" onClick={() => (open.value = true)}>Dialog</button>
        <button class="btn" onClick={() => toast('A short message')}>Toast</button>
        {open.value && <Dialog title="Dialog" close={() => (open.value = false)}><p>What it asks.</p></Dialog>}
      </Part>
      <Toasts />
    </main>
  );
}

await loadTexts();
await loadTexts(textsOf);
render(<Design />, document.getElementById('app')!);
