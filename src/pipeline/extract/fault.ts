/** An attribute of an object could not be had; the sentence holds nothing of the object's values. Never leaves this module. */
export class ExtractionFault extends Error {
  override readonly name = 'ExtractionFault'
}
