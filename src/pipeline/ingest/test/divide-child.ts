import { writeSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { openLog, silentLogger } from '#runtime'
import { divideLogs } from '../division.ts'

// Divides the logs `f0` … of a folder among so many owners, again and again, until it is killed from outside.
const [directory = '', former = '1', owners = '1', position = '-1'] = process.argv.slice(2)
const say = (word: string) => writeSync(1, `${word}\n`)
const open = (name: string) => openLog({ directory: `${directory}/${name}`, segmentBytes: 64 * 1024 })
const place = { positions: { state: Number(position), history: -1 } }
const logs = await Promise.all(Array.from({ length: Number(former) }, (_, i) => open(`f${i}`)))
const from = logs.map((log) => ({ log, ...place }))
for (;;) {
  // What a division left that did not end is nothing.
  await rm(`${directory}/new`, { recursive: true, force: true })
  const to = await Promise.all(Array.from({ length: Number(owners) }, (_, i) => open(`new/${i}`)))
  say('dividing')
  await divideLogs({ from, to, logger: silentLogger })
  say('divided')
  for (const log of to) await log[Symbol.asyncDispose]()
}
