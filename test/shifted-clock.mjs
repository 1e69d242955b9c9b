/** Loaded before a program (`node --import`): its clock is off by as many ms as the file `SHIFTED_CLOCK` says, at any moment. */
import { readFileSync } from 'node:fs'

const Real = Date
const read = () => Number(readFileSync(process.env.SHIFTED_CLOCK, 'utf8'))
let shiftMs = read()
setInterval(() => {
  shiftMs = read()
}, 100).unref()

globalThis.Date = class extends Real {
  constructor(...given) {
    if (given.length === 0) super(Real.now() + shiftMs)
    else super(...given)
  }
  static now() {
    return Real.now() + shiftMs
  }
}
