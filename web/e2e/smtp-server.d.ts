/** What the tests use of the SMTP server. */
declare module 'smtp-server' {
  import type { Readable } from 'node:stream';
  export class SMTPServer {
    constructor(options: {
      disabledCommands: string[];
      onData(stream: Readable, session: { envelope: { rcptTo: { address: string }[] } }, done: () => void): void;
    });
    listen(port: number, host: string, done: () => void): { address(): { port: number } };
    close(done: () => void): void;
  }
}
