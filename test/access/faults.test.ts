import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from './bundle.ts'
import { faults, runFault } from './faults.ts'

/** Of what a person may see, and of what is seen of it: the two that are found soonest; all by `npm run fuzz:access -- --faults`. */
const quick = ['an expired policy counts', 'usage is shown without view_metrics']
/** The same search finds these, in more worlds. */
const further = [
  'an encoded list is kept for everybody',
  'rows are not filtered',
  'what pods use is shown without view_metrics',
  'the history of a type gives what a policy keeps back',
  'search looks at hidden nodes',
]

let directory = ''
beforeAll(() => {
  mkdirSync(join(root, 'node_modules/.cache'), { recursive: true })
  directory = mkdtempSync(join(root, 'node_modules/.cache/access-faults-'))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe('a mistake in access', () => {
  it('can be made where the list says: each text stands there once', () => {
    const places = faults.flatMap(({ mutations }) => mutations)
    const missing = places.filter(({ file, text }) => readFileSync(join(root, file), 'utf8').split(text).length !== 2)
    expect(missing).toEqual([])
  })

  const isFound = async (name: string) => {
    const fault = faults.find((one) => one.name === name)
    if (!fault) throw new Error(`no fault is called ${name}`)
    expect(await runFault(fault, directory, { worlds: 1500 })).toMatchObject({ found: true })
  }
  it.each(quick)('is found: %s', isFound)
  it.each(further)('is found: %s', { tags: ['long'] }, isFound)

  it('whose run is cut off counts neither as found nor as missed', async () => {
    const [fault] = faults
    if (!fault) throw new Error('there are no faults')
    await expect(runFault(fault, directory, { ms: 1 })).rejects.toThrow('was ended after 0.001 s')
  })
})
