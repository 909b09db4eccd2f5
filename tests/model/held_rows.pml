/* held_rows.pml - a transaction that reserves rows, and everything that can go wrong does.
 *
 * It lays on each of its rows an intent that says nothing yet. Holding all, it decides, says on those that it writes what
 * becomes of them (fills), and commits in a slot of its own. Finalising puts the filled images into place and releases the
 * others as they were. The others are an ordinary transaction over both rows and plain writes.
 *
 * Requests, owners and bystanders are those of row_images.pml: every write is one atomic conditional step; `world` is the
 * network (whatever was sent may arrive at any later time, any number of times) and all bystanders (who may fence, finalise
 * and undo at any moment, for leases are never trusted, and by what they have SEEN of the row, however long ago); an owner
 * may stop at any step.
 */
#define NR 2
#define NO 3
#define OPEN 0
#define COMM 1
#define VOID 2
#define RES 0          /* reserves both rows, writes row 0 (and row 1 with -DBOTH) */
#if SCEN==1
#define HAS_TX 1
#define HAS_PLAIN 0
#elif SCEN==2
#define HAS_TX 0
#define HAS_PLAIN 1
#elif SCEN==3
#define HAS_TX 1
#define HAS_PLAIN 1
#endif
#define TX 1
#define PLAIN 2
#define B(a) (1<<(a))
#ifdef BOTH
#define WRITES(a,r) ((a)!=PLAIN || (r)==0)
#else
#define WRITES(a,r) ((a)==TX || (r)==0)
#endif

typedef Row { byte val; byte it; bit filled };  /* val: who wrote the image, 0 the first one; it: intent of it-1 */
Row row[NR];
byte p[2];                                      /* the primaries of RES and TX */
byte seen[4];                                   /* the image that RES, TX built upon, by row */
#define SEEN(a,r) seen[(a)*NR+(r)]
byte sent, com;                                 /* network: prepares and reservations; commits */
byte fills;                                     /* network: bit r: RES says what becomes of row r */
bit plains; byte plain_base;                    /* network: the plain write, and the image it expects */
byte sawC, sawA;                                /* somebody has found the transaction committed / aborted */
byte sawH;                                      /* bit r: somebody has seen row r held by RES and no more */
byte sawF;                                      /* bit r: ... or filled */
byte gC, gTold, gval[NR];                       /* ghosts: committed; told "aborted"; the committed images */
hidden byte x;
hidden byte IMAGE, HELD, FILLED, LOST, TOLD;

#define AT(a,r) (row[r].it==0 && row[r].val==SEEN(a,r))

inline check() { d_step {
  x=0;
  do
  :: x<NR ->                                    /* IMAGE: what resolving shows is what was committed */
     if
     :: row[x].it && (gC & B(row[x].it-1)) && row[x].filled -> IMAGE=(row[x].it==gval[x]); assert(IMAGE)
     :: else -> IMAGE=(row[x].val==gval[x]); assert(IMAGE)
     fi;
     x++
  :: else -> break
  od;
  x=0; TOLD=((gTold & gC)==0); assert(TOLD) } }

inline commit(a) {
  p[a]=COMM; gC=gC|B(a); x=0;
  do
  :: x<NR -> HELD=(row[x].it==a+1); assert(HELD);                         /* all is held, */
             LOST=(row[x].val==gval[x] && SEEN(a,x)==gval[x]); assert(LOST);      /* as it was seen, */
             if :: WRITES(a,x) -> FILLED=row[x].filled; assert(FILLED); gval[x]=a+1 :: else fi;  /* and said what becomes of it */
             x++
  :: else -> x=0; break
  od;
  check() }

proctype reserver() {
  bit r;
  sent=sent|B(RES);
  do                                            /* hold: what has moved on is held as it is by then */
  :: atomic { p[RES]==OPEN && row[r].it!=RES+1 -> SEEN(RES,r)=row[r].val };
     atomic {
       if
       :: row[r].it==RES+1 -> SEEN(RES,r)=row[r].val
       :: AT(RES,r) -> row[r].it=RES+1; row[r].filled=0; check()
       :: else
       fi;
       if
       :: row[r].it==RES+1 && r==0 -> r=1
       :: row[r].it==RES+1 && r==1 -> r=0; break
       :: else
       fi }
  :: atomic { p[RES]==OPEN && row[r].it==RES+1 -> SEEN(RES,r)=row[r].val; if :: r==0 -> r=1 :: else -> r=0; break fi }
  :: atomic { p[RES]!=OPEN -> goto aborted }
  od;
  do                                            /* fill */
  :: WRITES(RES,r) -> fills=fills|B(r);
     atomic {
       if
#ifdef UNFILLED        /* mutation: commit without the answers */
       :: skip
#endif
       :: row[r].it==RES+1 -> row[r].filled=1; check()
       :: else -> goto aborted
       fi };
     if :: r==0 -> r=1 :: else -> break fi
  :: else -> if :: r==0 -> r=1 :: else -> break fi
  od;
  atomic { com=com|B(RES) };
  if
  :: atomic { p[RES]==OPEN -> commit(RES) }
  :: atomic { p[RES]!=OPEN -> goto aborted }
  :: goto stop                                  /* dies, or its answer is lost */
  fi;
  goto stop;
aborted:
  atomic { if :: p[RES]==OPEN -> p[RES]=VOID :: else fi;
           if :: p[RES]==VOID -> gTold=gTold|B(RES); sawA=sawA|B(RES); check() :: else fi };
stop: skip
}

proctype ordinary() {
  bit r;
  do
  :: atomic { row[r].it==0 -> SEEN(TX,r)=row[r].val; if :: r==0 -> r=1 :: else -> r=0; break fi }
  od;
  sent=sent|B(TX);
  do
  :: atomic {
       if
       :: row[r].it==TX+1 -> skip
       :: AT(TX,r) -> row[r].it=TX+1; row[r].filled=1; check()
       :: else -> goto aborted
       fi;
       if :: r==0 -> r=1 :: else -> break fi }
  od;
  atomic { com=com|B(TX) };
  if
  :: atomic { p[TX]==OPEN -> commit(TX) }
  :: atomic { p[TX]!=OPEN -> goto aborted }
  :: goto stop
  fi;
  goto stop;
aborted:
  atomic { if :: p[TX]==OPEN -> p[TX]=VOID :: else fi;
           if :: p[TX]==VOID -> gTold=gTold|B(TX); sawA=sawA|B(TX); check() :: else fi };
stop: skip
}

/* A plain write of row 0, once; its revision is its own. */
proctype plain() {
  atomic { row[0].it==0 -> plain_base=row[0].val; plains=1 }
}

#define CAN(what,then) :: atomic { what -> then }
#ifdef RELEASE_ANY     /* mutation: what was seen held and no more is released, whatever was said since */
#define RELEASABLE(r) ((sawH&B(r)) && row[r].it==RES+1)
#else
#define RELEASABLE(r) ((sawH&B(r)) && row[r].it==RES+1 && !row[r].filled)
#endif
#ifdef UNDO_ANY        /* mutation: undo does not look whose intent it is */
#define UNDOABLE(a,r) (row[r].it)
#else
#define UNDOABLE(a,r) (row[r].it==(a)+1)
#endif
#ifdef FILL_ANY        /* mutation: to fill does not look whose intent it is */
#define FILLABLE(r) ((fills&B(r)) && row[r].it && !row[r].filled || (fills&B(r)) && row[r].it==TX+1)
#define FILL(r) row[r].it=RES+1; row[r].filled=1
#else
#define FILLABLE(r) ((fills&B(r)) && row[r].it==RES+1 && !row[r].filled)
#define FILL(r) row[r].filled=1
#endif
#define FINALISE(a,r) row[r].val=(a)+1; row[r].it=0; row[r].filled=0
#define DROP(r) row[r].it=0; row[r].filled=0

#define PER_ROW(r) \
  CAN((sent&B(RES)) && AT(RES,r), row[r].it=RES+1; row[r].filled=0; check()) \
  CAN((sent&B(TX)) && AT(TX,r), row[r].it=TX+1; row[r].filled=1; check()) \
  CAN(FILLABLE(r), FILL(r); check()) \
  CAN(row[r].it==RES+1 && !row[r].filled && !(sawH&B(r)), sawH=sawH|B(r)) \
  CAN(row[r].it==RES+1 && row[r].filled && !(sawF&B(r)), sawF=sawF|B(r)) \
  CAN((sawC&B(RES)) && RELEASABLE(r), DROP(r); check()) \
  CAN((sawC&B(RES)) && (sawF&B(r)) && row[r].it==RES+1, FINALISE(RES,r); check()) \
  CAN((sawC&B(TX)) && row[r].it==TX+1, FINALISE(TX,r); check()) \
  CAN((sawA&B(RES)) && UNDOABLE(RES,r), DROP(r); check()) \
  CAN((sawA&B(TX)) && UNDOABLE(TX,r), DROP(r); check())
#define PER_TX(a) \
  CAN((com&B(a)) && p[a]==OPEN, commit(a)) \
  CAN((sent&B(a)) && p[a]==OPEN, p[a]=VOID) \
  CAN((sent&B(a)) && p[a]==COMM && !(sawC&B(a)), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && p[a]==VOID && !(sawA&B(a)), sawA=sawA|B(a))

proctype world() {
end:
  do
  PER_TX(RES) PER_TX(TX) PER_ROW(0) PER_ROW(1)
  CAN(plains && row[0].it==0 && row[0].val==plain_base, row[0].val=PLAIN+1; gval[0]=PLAIN+1; check())
#ifdef REACH
  :: atomic { (REACH) -> assert(false) }
#endif
  od
}

init { atomic {
  run reserver();
  if :: HAS_TX -> run ordinary() :: else fi;
  if :: HAS_PLAIN -> run plain() :: else fi;
  run world() } }
