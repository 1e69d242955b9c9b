import { bundle } from './bundle.ts'
import { faults } from './faults.ts'

for (const f of faults) {
  try {
    await bundle('/work/main/node_modules/.cache/axg', 'x', f.mutations)
  } catch (e) {
    console.log('BAD', f.name, String(e).slice(0, 300))
  }
}
