import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { root } from './bundle.ts'
import { faults, runFault } from './faults.ts'

/** A few that are found soon, of each sort; all of them by `npm run fuzz:access -- --faults`. */
const quick = [
  'an expired policy counts',
  'usage is shown without view_metrics',
  'an encoded list is kept for everybody',
  'search looks at hidden nodes',
  'rows are not filtered',
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

  it.each(quick)('is found: %s', { timeout: 180_000 }, async (name) => {
    const fault = faults.find((one) => one.name === name)
    if (!fault) throw new Error(`no fault is called ${name}`)
    expect(await runFault(fault, directory, 1500)).toMatchObject({ found: true })
  })
})
