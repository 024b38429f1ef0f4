/** The native binding of quiche, or the reason why there is none. */
export async function native() {
  try {
    const { quiche } = await import('@matrixai/quic/native/index.js');
    return quiche;
  } catch (error) {
    throw new Error(`@matrixai/quic is not there (npm ci in interop/peers/node): ${error.message}`);
  }
}
