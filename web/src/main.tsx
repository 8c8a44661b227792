import { render } from 'preact';
import './style.css';
import { Sales } from './documents/buyer';

render(<h1>Seckill</h1>, document.getElementById('app')!);
console.info((Sales as unknown as { name: string }).name);
