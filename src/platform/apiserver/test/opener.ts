// A process of its own for journal-sealed.test.ts: says `opening`, then opens a journal with the keys of KEYS, and ends.
import { writeSync } from 'node:fs'
import { createSealer, localKeys, parseKeys } from '#sealing'
import { journalStorage } from '../journal.ts'

const [, , dir = ''] = process.argv
const sealer = createSealer(localKeys(parseKeys(process.env.KEYS ?? '') ?? []))
writeSync(1, 'opening\n')
const storage = await journalStorage({ dir, sealer })
await storage[Symbol.asyncDispose]()
