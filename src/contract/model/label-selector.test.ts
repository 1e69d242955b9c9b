import { describe, expect, it } from 'vitest'
import { parseLabelSelector } from './label-selector.ts'

const web = { app: 'web', env: 'prod', 'app.kubernetes.io/name': 'shop' }
const none = {}

describe('a label selector', () => {
  it.each([
    ['', true, true],
    ['app=web', true, false],
    ['app==web', true, false],
    ['app = web , env=prod', true, false],
    ['app!=web', false, true],
    ['env in (prod, stage)', true, false],
    ['env in(dev)', false, false],
    ['env notin (prod)', false, true],
    ['env notin (dev),app', true, false],
    ['app', true, false],
    ['!app', false, true],
    ['app.kubernetes.io/name=shop', true, false],
    ['app=', false, false],
    ['constructor', false, false],
  ])('%j chooses what it says', (text, ofWeb, ofNone) => {
    const test = parseLabelSelector(text)
    expect(typeof test === 'string' ? test : [test(web), test(none)]).toEqual([ofWeb, ofNone])
  })

  it.each(['=web', 'app=(a', 'env in prod', 'a b', '!', 'app=web=x', '-app'])('%j is refused with a sentence', (text) =>
    expect(parseLabelSelector(text)).toContain('is no label selector'),
  )
})
