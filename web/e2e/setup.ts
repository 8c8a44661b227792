import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Builds the binary once, with the shop that is committed. SECKILL_BINARY names one that is built already. */
export default function setup(): (() => void) | undefined {
  if (process.env['SECKILL_BINARY']) return undefined;
  const dir = mkdtempSync(join(tmpdir(), 'seckill-'));
  const binary = join(dir, 'seckill');
  execFileSync('go', ['build', '-o', binary, './cmd/seckill'], { cwd: join(import.meta.dirname, '../..'), stdio: 'inherit' });
  process.env['SECKILL_BINARY'] = binary;
  return () => rmSync(dir, { recursive: true, force: true });
}
