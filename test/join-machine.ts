import { decodeJoinText } from '../src/contract/wire/join-text.ts'
import { IdentityFiles } from '../src/pipeline/agent/join/identity-files.ts'
import { join } from '../src/pipeline/agent/join/join.ts'

// `clusterpulse join` as far as it is a member, without the agent it goes on as: starts in a fifth of the time.
const [directory = '', token] = process.argv.slice(2)
process.title = 'clusterpulse join'
await join(token === undefined ? undefined : decodeJoinText(token), {
  store: new IdentityFiles(directory),
  version: '1.2.3',
  say: (sentence) => void process.stderr.write(`${sentence}\n`),
  signal: new AbortController().signal,
})
setInterval(() => undefined, 60_000) // until it is killed
