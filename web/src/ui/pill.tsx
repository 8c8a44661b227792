import { useSignalEffect } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { second } from '../api/clock';
import type { Connection } from '@seckill/client/live';
import { connection } from '../api/client';
import { t } from '../i18n/text';
import { readOut } from './live-region';
import { toast } from './toast';

function words(line: Connection): string {
  switch (line.state) {
    case 'idle':
      return t('line.idle');
    case 'connecting':
      return t('line.connecting');
    case 'live':
      return t('line.live');
    case 'polling':
      return t('line.polling');
    case 'retrying':
      void second.value; // counts down
      if (!navigator.onLine) return t('line.offline');
      return t('line.retrying', { s: Math.max(0, Math.ceil((line.at - performance.now()) / 1000)) });
  }
}

const dots: Record<Connection['state'], string> = {
  idle: 'bg-edge',
  connecting: 'bg-warn',
  live: 'bg-good',
  polling: 'bg-good',
  retrying: 'bg-warn',
};

/** The state of the live connection. The dot keeps its place whatever the words are. Its loss and its return are read out, its countdown is not. */
export function ConnectionStatus() {
  const lost = useRef(false);
  useSignalEffect(() => {
    const say = matchMedia('(width >= 48rem)').matches ? readOut : toast; // where there is room, the words below say it
    const { state } = connection.value;
    if (state === 'retrying' && !lost.current) {
      lost.current = true;
      say(t('line.lost'));
    } else if (lost.current && (state === 'live' || state === 'polling')) {
      lost.current = false;
      say(t('line.back'));
    }
  });
  const line = connection.value;
  return (
    <span class="inline-flex flex-row-reverse items-center gap-1.5 px-2 text-sm text-soft md:min-w-36" data-line={line.state}>
      <span class={`size-2 rounded-full ${dots[line.state]}`} />
      <span key={line.state} class={`max-md:sr-only ${line.state === 'retrying' ? 'notranslate' : ''}`}>{words(line)}</span>
    </span>
  );
}
