import { describe, expect, it } from 'vitest'
import { fitOf } from './things.ts'

const claims = { names: ['Volume claims', 'persistentvolumeclaims', 'persistentvolumeclaim', 'pvc'] }

describe('fitOf', () => {
  it.each([
    ['pvc', 'exact'],
    ['PVC', 'exact'],
    ['volume  claims', 'exact'],
    ['persistentvolumeclaim', 'exact'],
    ['vol', 'start'],
    ['claims', 'start'],
    ['claims volume', 'part'],
    ['laims', 'part'],
    ['volume zebra', undefined],
  ])('%s: %s', (text, fit) => expect(fitOf(claims, text)).toBe(fit))
  it('finds a guide by words of its title', () =>
    expect(fitOf({ names: ['The first hour'] }, 'first hour')).toBe('start'))
  it('leaves everything where nothing is typed', () => expect(fitOf(claims, ' ')).toBe('part'))
})
