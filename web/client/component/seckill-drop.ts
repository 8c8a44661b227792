/** The component: it defines <seckill-drop>, and exports what a page needs to give it a session. */
export { Drop } from '../src/drop.ts';
export { SeckillDrop } from './element.ts';
export { PasswordSession, tokenSession } from '../src/session.ts';
import '../src/socket.ts'; // every sale is followed: it is in the first file
