import { writeSync } from 'node:fs'
import { openEvents } from '#events'
import { parseClusterName, systemClock } from '#model'
import { openLog } from '#runtime'
import { openState } from '#state'
import { aBatch, aNode, complete, facts } from '../../state/test/fleet-words.ts'
import { Ingester } from '../ingester.ts'

// A hub's write path that is killed from outside. It says what it found, then what it acknowledged, one line each;
// a line is written in one system call after the acknowledgement, so what was read by the parent was acknowledged.
const [directory = '', clusters = '5'] = process.argv.slice(2)
const say = (...words: (string | number)[]) => writeSync(1, `${words.join(' ')}\n`)

const log = await openLog({ directory: `${directory}/log`, segmentBytes: 256 * 1024, retainBytes: 0 })
const state = await openState({ kind: 'embedded', directory: `${directory}/state`, writeBehindMs: 10 })
const ingester = await Ingester.open({ log, state, events: openEvents({ kind: 'in-process' }) })
await ingester.flushed()
for (const { name, sequence, parts } of state.clusters()) {
  say('found', name, sequence, [...(parts.node?.items.keys() ?? [])].join(','))
}
say('ready')

const names = Array.from({ length: Number(clusters) }, (_, i) => parseClusterName(`c${i}`))
await Promise.all(
  names.map(async (name) => {
    for (let count = 1; ; count++) {
      await ingester.connect(name, facts())
      const sequence = ingester.nextSequence(name)
      await ingester.accept({
        batch: aBatch(name, sequence, [complete('node', aNode(`n${sequence}`), aNode('always'))]),
      })
      say('acknowledged', name, sequence)
      if (name === names.at(-1) && count % 7 === 0) {
        say('removing', name)
        await ingester.remove(name)
        say('removed', name)
      }
      await systemClock.sleep(1)
    }
  }),
)
