import { mutation } from './mutation';

export const ChangeAccessMembers = mutation('ChangeAccessMembers', `list { members } rows problems { line reason }`);
