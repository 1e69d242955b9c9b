import { decodeJoinText } from '../../../contract/wire/join-text.ts'
import { IdentityFiles } from '../../../pipeline/agent/join/identity-files.ts'
import { join } from '../../../pipeline/agent/join/join.ts'

// A machine that joins and is killed from outside: says when it begins, what is waited for, and that it is a member.
const [directory = '', token = ''] = process.argv.slice(2)
process.stdout.write('ready\n')
const { cluster } = await join(decodeJoinText(token), {
  store: new IdentityFiles(directory),
  version: '1.2.3',
  say: (sentence) => void process.stdout.write(`${sentence}\n`),
  signal: new AbortController().signal,
})
process.stdout.write(`member ${cluster}\n`)
process.exit(0)
