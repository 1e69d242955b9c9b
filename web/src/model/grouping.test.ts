import { describe, expect, it } from 'vitest'
import { groupingFault } from './grouping.ts'

describe('a grouping that is none', () => {
  const labels = ['environment', 'region']
  it.each([
    ['environment', 'environment is nothing to group by', 'label:environment'],
    ['helth', 'helth is nothing to group by', 'health'],
    ['label:enviroment', 'enviroment is no label of these clusters', 'label:environment'],
    ['zebra', 'zebra is nothing to group by', null],
  ])('%s is named, with what was probably meant', (grouping, text, meant) =>
    expect(groupingFault(grouping, labels)).toEqual({ text, meant }),
  )
  it.each(['', 'health', 'platform', 'label:region'])('%s is one', (grouping) =>
    expect(groupingFault(grouping, labels)).toBeUndefined(),
  )
})
