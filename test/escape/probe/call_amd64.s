#include "textflag.h"

// func int80(number, first, second, third uintptr) uintptr
//
// The gate of 32-bit programs works in a 64-bit one too. It clears R8 to R11.
TEXT ·int80(SB), NOSPLIT, $0-40
	MOVQ number+0(FP), AX
	MOVQ first+8(FP), BX
	MOVQ second+16(FP), CX
	MOVQ third+24(FP), DX
	XORQ SI, SI
	XORQ DI, DI
	INT  $0x80
	MOVQ AX, ret+32(FP)
	RET
